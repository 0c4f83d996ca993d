import { describeClientDrops } from './describe-client-drops.js';

describeClientDrops(Number(process.env['ANTIPHON_DROPS'] ?? 200));
