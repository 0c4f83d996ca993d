import type { Logger } from '@antiphon/observability';
import { openCell } from './cell-process.js';
import type { Cell } from './cell-process.js';
import { LAYERS, activeLayers, bareWall, buildWall } from './wall.js';
import type { Layer, Wall, WallLimits } from './wall.js';

export interface RaisedWall {
  readonly open: () => Promise<Cell>;
  /** What was found to hold in a running cell. */
  readonly layers: readonly Layer[];
  /** A first cell, ready for use. */
  readonly first: Cell;
  readonly close: () => Promise<void>;
}

const openFirst = async (wall: Wall, limits: WallLimits, logger: Logger): Promise<[Wall, Cell]> => {
  try {
    return [wall, await openCell(wall)];
  } catch (error) {
    if (wall.planned.length === 0) throw error;
    logger.warn(
      { err: error, planned: wall.planned },
      'no cell starts behind all layers together, trying with none',
    );
    const bare = await bareWall(wall, limits);
    return [bare, await openCell(bare)];
  }
};

/** Puts up the strongest wall that this machine allows, proves it by a first cell, and says what is missing. */
export const raiseWall = async (limits: WallLimits, logger: Logger): Promise<RaisedWall> => {
  const [wall, first] = await openFirst(await buildWall(limits), limits, logger);
  const layers = activeLayers(wall, first.facts);
  const missing = LAYERS.filter((layer) => !layers.includes(layer));
  if (missing.length > 0)
    logger.warn({ layers, missing }, 'plug-ins run behind fewer layers than this platform could give');
  else logger.info({ layers }, 'plug-ins run behind every layer');
  return { open: () => openCell(wall), layers, first, close: wall.close };
};
