import { Controller, Inject } from '@nestjs/common';
import { listPlugins } from '@antiphon/contracts/sandbox';
import type { PluginView } from '@antiphon/contracts/sandbox';
import { HandleRequest } from '@antiphon/messaging';
import { SANDBOX } from '../sandbox.js';
import type { Sandbox } from '../sandbox.js';

@Controller()
export class ListPluginsController {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  @HandleRequest(listPlugins)
  list(): { plugins: PluginView[] } {
    return { plugins: [...this.sandbox.plugins] };
  }
}
