// A spec of CI with the large sample that tools/nightly/parts.mjs sets.
import './agent-budgets.int.spec.js';
