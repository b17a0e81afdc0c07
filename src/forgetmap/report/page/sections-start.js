// A page of sections in one file.

startSections();
