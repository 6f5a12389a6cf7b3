"""The periodic duties: one duty per module, called in turn by `delivery.chores.loop`."""
