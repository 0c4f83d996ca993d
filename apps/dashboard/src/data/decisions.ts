import { createStore } from './store.js';

/** True once an approval has been decided in this tab. */
export const hasDecided = createStore(false);
