import { Controller, Inject } from '@nestjs/common';
import { cancelRun, getRun, listRuns, startRun } from '@antiphon/contracts/agent';
import type { RunView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { HandleRequest } from '@antiphon/messaging';
import { RUNS_ENGINE } from './run-worker.js';
import type { RunsEngine } from './run-worker.js';

@Controller()
export class RunsController {
  constructor(@Inject(RUNS_ENGINE) private readonly engine: RunsEngine) {}

  @HandleRequest(startRun)
  start(request: z.output<typeof startRun.request>): Promise<z.output<typeof startRun.reply>> {
    return this.engine.startRun(request);
  }

  @HandleRequest(cancelRun)
  cancel(request: z.output<typeof cancelRun.request>): Promise<z.output<typeof cancelRun.reply>> {
    return this.engine.cancelRun(request);
  }

  @HandleRequest(getRun)
  get(request: z.output<typeof getRun.request>): Promise<RunView> {
    return this.engine.getRun(request);
  }

  @HandleRequest(listRuns)
  list(request: z.output<typeof listRuns.request>): Promise<z.output<typeof listRuns.reply>> {
    return this.engine.listRuns(request);
  }
}
