import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { configProblems, loadConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import type { Logger } from '@antiphon/observability';

type Environment = Readonly<Record<string, string | undefined>>;

/** Configuration that the next start of a service uses. */
export interface ServiceConfiguration {
  readonly config: AntiphonConfig;
  /** Path of the file to read, null for the built-in defaults. */
  readonly file: string | null;
  /** Folder from which relative paths in the file start, where it is not the file's own. */
  readonly folder: string | null;
  /** First problem of the present file, while the last good one is used; else null. */
  readonly problem: string | null;
}

export interface ConfigurationOptions {
  readonly env: Environment;
  readonly cwd: string;
  readonly homeDir: string;
  /** Receives a copy of each good file. */
  readonly copyFile: string;
  readonly logger: Logger;
  readonly note: (line: string) => void;
}

const describe = (error: unknown): string => {
  const [first] = configProblems(error);
  if (first === undefined) return error instanceof Error ? error.message : String(error);
  return `${first.file}${first.line === null ? '' : `:${first.line}`}: ${first.message}`;
};

/**
 * Remembers the last valid configuration. A service that is restarted while the file is broken gets
 * a copy of it. A crash then does not become a restart loop.
 */
export class LastGoodConfiguration {
  private last: ServiceConfiguration;

  /** Throws `CONFIG.*`: a stack does not start with a broken file. */
  constructor(private readonly options: ConfigurationOptions) {
    this.last = this.store(this.load(options.env));
  }

  /** Returns the configuration without reading the file again. */
  current(): ServiceConfiguration {
    return this.last;
  }

  /** Reads the file again, and returns the configuration for a start. */
  reload(): ServiceConfiguration {
    const { env, copyFile, logger, note } = this.options;
    const { source } = this.last.config;
    try {
      this.last = this.store(this.load(source === null ? env : { ...env, ANTIPHON_CONFIG: source }));
    } catch (error) {
      const problem = describe(error);
      if (this.last.problem !== problem) {
        logger.error({ problem }, 'configuration broken, last good used');
        note(`configuration: ${problem}; services continue with the last good one`);
      }
      const folder = source === null ? this.options.cwd : dirname(source);
      this.last = { config: this.last.config, file: copyFile, folder, problem };
    }
    return this.last;
  }

  private load(env: Environment): AntiphonConfig {
    const { cwd, homeDir } = this.options;
    return loadConfig({ env, cwd, homeDir });
  }

  private store(config: AntiphonConfig): ServiceConfiguration {
    try {
      this.copy(config.source);
    } catch (error) {
      // A full disk is no fault of the configuration. The copy is made at a later start.
      this.options.logger.warn({ err: error }, 'configuration copy failed');
    }
    return { config, file: config.source, folder: null, problem: null };
  }

  private copy(source: string | null): void {
    const { copyFile } = this.options;
    const temporary = `${copyFile}.new`;
    // It may contain the gateway's token.
    writeFileSync(temporary, '', { mode: 0o600 });
    if (source !== null) copyFileSync(source, temporary);
    renameSync(temporary, copyFile);
  }
}
