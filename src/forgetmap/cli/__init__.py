"""The command line. One file per noun, loaded only when it is used."""
