"""Tables: from the columns of a file to the features of a model."""
