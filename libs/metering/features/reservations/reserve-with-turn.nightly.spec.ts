// A spec of CI with the number of rounds that tools/nightly/parts.mjs sets.
import './reserve-with-turn.int.spec.js';
