import { agentProjections } from '@antiphon/agent-features/projections';
import type { ProjectionDefinition } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { memoryProjections } from '@antiphon/memory-features/projections';
import { meteringProjections } from '@antiphon/metering-features/projections';

/** Every projection of every service. */
export const allProjections: readonly ProjectionDefinition[] = [
  ...agentProjections,
  ...memoryProjections,
  ...meteringProjections,
];

/** Throws `CLI.USAGE` for a name that no projection has. */
export const projectionNamed = (name: string): ProjectionDefinition => {
  const found = allProjections.find((definition) => definition.name === name);
  if (found) return found;
  const known = allProjections.map((definition) => definition.name).join(', ');
  throw invalid('CLI.USAGE', `there is no projection ${name}; those there are: ${known}`);
};
