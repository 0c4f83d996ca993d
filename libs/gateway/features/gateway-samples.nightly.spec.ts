// Specs of CI with the large samples that tools/nightly/parts.mjs sets.
import './events/event-page.int.spec.js';
import './sockets/hostile-connections.spec.js';
