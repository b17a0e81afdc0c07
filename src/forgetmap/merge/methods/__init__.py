"""The merge methods: pure functions, each written from the formula of its paper."""
