"""S3, Google Cloud Storage, Azure Blob Storage and folders, as stores of objects."""
