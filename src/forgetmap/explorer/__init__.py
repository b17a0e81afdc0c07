"""The served explorer: any two runs compared on the fly, item by item, however many there are."""
