import { randomUUID } from 'node:crypto';
import { Controller, Module } from '@nestjs/common';
import { AppError, type ERROR_KINDS } from '@antiphon/kernel';
import { defineRequest } from '@antiphon/contracts/messaging';
import { createLogger, currentContext } from '@antiphon/observability';
import { z } from 'zod';
import { HandleRequest } from '../requests/request-server.js';

export const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
// Own subjects isolate spec files that run in parallel.
export const area = `t${randomUUID().slice(0, 8)}`;
const anything = z.record(z.string(), z.unknown());

export const echo = defineRequest({
  subject: `cmd.${area}.echo`,
  request: z.strictObject({ text: z.string(), times: z.int().default(1) }),
  reply: z.object({ text: z.string(), context: anything }),
  timeoutMs: 2_000,
});
/** As `echo`, for one process. */
export const direct = defineRequest({ ...echo, subject: `cmd.${area}.direct`, toProcess: true });
export const failing = defineRequest({
  subject: `cmd.${area}.fail`,
  request: z.strictObject({ kind: z.string() }),
  reply: z.object({}),
  timeoutMs: 2_000,
});
export const slow = defineRequest({
  subject: `cmd.${area}.slow`,
  request: z.strictObject({}),
  reply: z.object({ done: z.boolean() }),
  timeoutMs: 50,
});
export const huge = defineRequest({
  subject: `cmd.${area}.huge`,
  request: z.strictObject({}),
  reply: z.object({ text: z.string() }),
  timeoutMs: 2_000,
});
export const broken = defineRequest({
  subject: `cmd.${area}.broken`,
  request: z.strictObject({}),
  reply: z.object({ text: z.string() }),
  timeoutMs: 2_000,
});

/** Controls of a spec over the handlers. */
export const control = {
  /** Maximum size of a message on the server, bytes: `huge` replies with as much text. */
  maxPayload: 0,
  /** Lets the running call of `slow` end. */
  release: (): void => {},
  /** Called when a call of `slow` begins. */
  started: (): void => {},
};

@Controller()
class EchoController {
  @HandleRequest(echo)
  async echo({ text, times }: z.output<typeof echo.request>): Promise<z.input<typeof echo.reply>> {
    await Promise.resolve();
    return { text: text.repeat(times), context: { ...currentContext() } };
  }

  @HandleRequest(direct)
  direct(request: z.output<typeof echo.request>): Promise<z.input<typeof echo.reply>> {
    return this.echo(request);
  }

  @HandleRequest(failing)
  fail({ kind }: z.output<typeof failing.request>): Promise<Record<string, never>> {
    if (kind === 'unexpected') throw new TypeError('password=hunter2 at /srv/secret.js:1');
    const data = { scope: 'session' };
    return Promise.reject(
      new AppError(kind as (typeof ERROR_KINDS)[number], 'TEST.FAILED', `it is ${kind}`, { data }),
    );
  }

  @HandleRequest(slow)
  async slow(): Promise<{ done: boolean }> {
    const released = new Promise<void>((resolve) => (control.release = resolve));
    control.started();
    await released;
    return { done: true };
  }

  @HandleRequest(huge)
  huge(): { text: string } {
    return { text: 'x'.repeat(control.maxPayload) };
  }

  @HandleRequest(broken)
  broken(): { text: string } {
    return { text: 5 as unknown as string };
  }
}

@Module({ controllers: [EchoController] })
export class EchoModule {}

/** Lines that the handlers' process logged. */
export const lines: Record<string, unknown>[] = [];
export const logger = createLogger({
  service: 'agent',
  sink: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});
