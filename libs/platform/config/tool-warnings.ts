import type { AntiphonConfig } from './antiphon-config.js';
import { BUNDLED_PLUGINS } from './defaults.js';
import { findNearest } from './find-nearest.js';

/**
 * Tools that nothing can provide. Only a file without plug-ins can be judged: which tools a module has is known
 * when it is loaded.
 */
export const toolWarnings = ({ agents, plugins }: AntiphonConfig): readonly string[] => {
  if (plugins.length > 0) return [];
  return agents.flatMap(({ id, tools }) =>
    tools
      .filter((tool) => !BUNDLED_PLUGINS.includes(tool))
      .map((tool) => {
        const nearest = findNearest(tool, BUNDLED_PLUGINS);
        const hint = nearest === null ? '' : `; did you mean ${nearest}?`;
        return `agent ${id} may call the tool ${tool}, which no plug-in has${hint}`;
      }),
  );
};
