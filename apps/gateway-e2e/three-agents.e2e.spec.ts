import { describeThreeAgents, FACT_CHANGES } from './three-agents.js';

// The nightly run changes one fact of each kind.
describeThreeAgents(FACT_CHANGES.slice(0, 1));
