import { Controller, Inject } from '@nestjs/common';
import { registerRemoteTools, removeRemoteTool } from '@antiphon/contracts/sandbox';
import { conflict } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { RemoteToolRegistry } from './remote-tool-registry.js';
import type { Registration } from './remote-tool-registry.js';
import { ToolWorkerTable } from './tool-worker-table.js';

/** Handles `cmd.sandbox.remote.register` and `cmd.sandbox.remote.remove`. */
@Controller()
export class RemoteToolsHandler {
  constructor(
    @Inject(RemoteToolRegistry) private readonly registry: RemoteToolRegistry,
    @Inject(ToolWorkerTable) private readonly workers: ToolWorkerTable,
  ) {}

  @HandleRequest(registerRemoteTools)
  register({
    workspace,
    caller,
    tools,
  }: z.output<typeof registerRemoteTools.request>): Promise<Registration> {
    return this.registry.register(workspace, caller, tools);
  }

  /** Throws `TOOL.HAS_WORKERS` (conflict) while programs serve it: they would register it again. */
  @HandleRequest(removeRemoteTool)
  async remove({ workspace, caller, name }: z.output<typeof removeRemoteTool.request>) {
    const workers = this.workers.countAny(workspace, name);
    if (workers > 0)
      throw conflict('TOOL.HAS_WORKERS', `${workers} programs serve ${name} now: stop them first`, {
        data: { workers },
      });
    return { removed: await this.registry.remove(workspace, caller, name) };
  }
}
