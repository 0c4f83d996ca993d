// A spec of CI with the large sample that tools/nightly/parts.mjs sets.
import './agents.unit.spec.js';
