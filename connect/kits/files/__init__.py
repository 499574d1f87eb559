"""How files are divided into folders, and how the folders are named."""
