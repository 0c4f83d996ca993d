// A service in its own process, from the built packages; it raises the errors it is sent by IPC.
import { Module } from '@nestjs/common';
import { runService } from '@antiphon/service-host';

class ChildModule {}
Module({})(ChildModule);

process.on('message', (message) => {
  if (message === 'throw')
    setTimeout(() => {
      throw new Error('raised for the spec');
    });
  if (message === 'reject') void Promise.reject(new Error('raised for the spec'));
});
await runService({ service: 'sandbox', module: ChildModule, env: process.env });
