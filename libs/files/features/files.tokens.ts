import { createToken } from '@antiphon/service-host';
import type { VirtualFiles } from './trees/virtual-files.js';

/** Files of a workspace that are built on read. */
export const VIRTUAL_FILES = createToken<VirtualFiles>('VIRTUAL_FILES');
