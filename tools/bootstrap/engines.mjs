export { ENGINE_NAMES, ensureEngines, neededEngines } from './engines/ensure-engines.mjs';
