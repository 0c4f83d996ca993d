import { contextSizes } from '@antiphon/config';
import type { AntiphonConfig, ContextSizes } from '@antiphon/config';
import type { ModelPort } from '@antiphon/providers-domain';

export interface ContextSizerDeps {
  readonly config: Pick<AntiphonConfig, 'memory'>;
  readonly models: Pick<ModelPort, 'inputsOf' | 'open'>;
}

/** Sizes of the contexts of models: by their windows, or by the setting. */
export class ContextSizer {
  constructor(private readonly deps: ContextSizerDeps) {}

  /** Number of recent turns that a context has. */
  get window(): number {
    return this.deps.config.memory.episodicWindow;
  }

  async of(
    workspace: string,
    choice: { readonly provider: string; readonly model: string },
  ): Promise<ContextSizes> {
    const { config, models } = this.deps;
    await models.open(choice.provider, workspace);
    return contextSizes(models.inputsOf(choice, workspace).contextWindow, config.memory.contextTokens);
  }
}
