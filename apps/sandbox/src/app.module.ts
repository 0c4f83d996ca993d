import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { SandboxModule } from '@antiphon/sandbox-features';

/** The same distance from `src` and from `dist`. */
const BUNDLED_PLUGINS = fileURLToPath(new URL('../../../plugins/dist', import.meta.url));

/** What the sandbox service is made of. */
@Module({ imports: [SandboxModule.withBundled(BUNDLED_PLUGINS)] })
export class AppModule {}
