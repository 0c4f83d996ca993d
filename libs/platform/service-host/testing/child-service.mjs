// A service as a process of its own, from the built packages; what it does wrong comes by IPC.
import { Module } from '@nestjs/common';
import { runService } from '@antiphon/service-host';

class ChildModule {}
Module({})(ChildModule);

process.on('message', (message) => {
  if (message === 'throw')
    setTimeout(() => {
      throw new Error('nobody catches this');
    });
  if (message === 'reject') void Promise.reject(new Error('nobody handles this'));
});
await runService({ service: 'sandbox', module: ChildModule, env: process.env });
