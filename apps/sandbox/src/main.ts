import { fileURLToPath } from 'node:url';
import { SandboxModule } from '@antiphon/sandbox-features';
import { runService } from '@antiphon/service-host';

/** Folder of the bundled plug-ins, at the same distance from `src` and from `dist`. */
const BUNDLED_PLUGINS = fileURLToPath(new URL('../../../plugins/dist', import.meta.url));

await runService({
  service: 'sandbox',
  module: SandboxModule.withBundled(BUNDLED_PLUGINS),
  env: process.env,
});
