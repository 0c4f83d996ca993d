import { Controller, Inject } from '@nestjs/common';
import { addHttpTool, registerRemoteTools, removeRemoteTool } from '@antiphon/contracts/sandbox';
import type { AntiphonConfig } from '@antiphon/config';
import { conflict, forbidden, rejected } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { CONFIG } from '@antiphon/service-host';
import type { z } from 'zod';
import { refuseEndpoint } from './call-endpoint.js';
import { RemoteToolRegistry } from './remote-tool-registry.js';
import type { Registration } from './remote-tool-registry.js';
import { ToolWorkerTable } from './tool-worker-table.js';

/** Handles `cmd.sandbox.remote.register`, `.add` and `.remove`. */
@Controller()
export class RemoteToolsHandler {
  constructor(
    @Inject(RemoteToolRegistry) private readonly registry: RemoteToolRegistry,
    @Inject(ToolWorkerTable) private readonly workers: ToolWorkerTable,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'tools'>,
  ) {}

  @HandleRequest(registerRemoteTools)
  register({
    workspace,
    caller,
    tools,
  }: z.output<typeof registerRemoteTools.request>): Promise<Registration> {
    return this.registry.register(workspace, caller, tools);
  }

  @HandleRequest(addHttpTool)
  async add({ workspace, caller, tool, endpoint }: z.output<typeof addHttpTool.request>) {
    const refusal = refuseEndpoint(endpoint.url, this.config.tools.privateHosts);
    if (refusal !== null)
      throw forbidden('TOOL.ENDPOINT_REFUSED', `this address of a tool cannot be used: ${refusal}`);
    const { tools, refused } = await this.registry.register(workspace, caller, [{ ...tool, endpoint }]);
    const [registered] = tools;
    if (registered) return registered;
    const { code, message } = refused[0] ?? { code: 'TOOL.DECLARATION_INVALID', message: 'it was refused' };
    throw code === 'TOOL.NAME_TAKEN' ? conflict(code, message) : rejected(code, message);
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
