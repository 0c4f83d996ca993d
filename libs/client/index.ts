export type { StreamFrameData } from '@antiphon/contracts/reference';
