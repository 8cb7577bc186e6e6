"""Large tables that never change once written: Parquet parts named by the hash of their bytes."""
