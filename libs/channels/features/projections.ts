export { agentChannels } from './list/channel-deliveries.projection.js';
