import { describeThreeAgents, FACT_CHANGES } from './three-agents.js';

describeThreeAgents(FACT_CHANGES);
