"""Who writes the texts of the model-written types: recorded answers, a model behind an endpoint, nobody."""
