// A spec of CI with the duration that tools/nightly/parts.mjs sets.
import './lock-order.int.spec.js';
