"""What every engine uses: counts in arrays of public shapes, packed attributes, whole numbers."""
