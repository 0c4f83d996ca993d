"""Serves a model file by llama.cpp's own server, as `llama-server` does."""

import signal
import sys

import xllamacpp

model, alias, port, context, key = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {alias}
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.api_keys = [key]
params.n_ctx = int(context)
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.use_jinja = True
params.ui = False
server = xllamacpp.Server(params)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    signal.pause()
