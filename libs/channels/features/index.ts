export { ChannelsModule } from './channels.module.js';
export { ChannelWork } from './delivery/channel-work.js';
export type { DeliveryProgress } from './delivery/channel-work.js';
export type { DeliveryRef } from './delivery/delivery-streams.js';
export { DELIVERY_TIMERS, LocalDeliveries } from './delivery/delivery-timers.js';
export type { DeliveryTimers } from './delivery/delivery-timers.js';
export { ChannelPolls } from './polling/channel-polls.js';
export { ChannelSockets } from './sockets/channel-sockets.js';
export { readOpenDeliveries } from './list/read-deliveries.js';
