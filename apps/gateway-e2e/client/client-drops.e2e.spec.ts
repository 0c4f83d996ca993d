import { describeClientDrops } from './describe-client-drops.js';

describeClientDrops(8);
