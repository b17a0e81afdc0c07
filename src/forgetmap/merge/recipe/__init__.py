"""What a recipe is, how it is read and checked, and which value each tensor gets."""
