"""The folder of a merged model: tensor files and all others, written atomically."""
