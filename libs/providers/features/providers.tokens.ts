import { createToken } from '@antiphon/service-host';
import type { Models } from './adapters/create-models.js';

/** Token of the models of all providers (`Models`). */
export const MODELS = createToken<Models>('MODELS');
