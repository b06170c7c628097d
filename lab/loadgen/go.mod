module sallyport.test/lab/loadgen

go 1.26.0
