"""The periodic duties: a duty per module, called in turn by `delivery.chores.loop`."""
