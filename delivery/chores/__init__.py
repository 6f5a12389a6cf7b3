"""What is to be done now and then: one duty a file, called by turns from `delivery.chores.loop`."""
