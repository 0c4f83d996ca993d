import { createStore } from '../../data/store.js';

/** Number of things that need attention now; null until they are known. */
export const attentionCount = createStore<number | null>(null);
