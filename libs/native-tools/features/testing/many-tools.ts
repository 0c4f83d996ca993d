import type { ToolDescription } from '@antiphon/contracts/sandbox';

/** Services with two kinds of things each, and two further tools `name: description`. */
const SERVICES = `
github|GitHub|issue:issue of a repository|pull_request:pull request|merge_pull_request:Merges an approved pull request into its base branch|search_code:Searches source code across repositories
gitlab|GitLab|merge_request:merge request|pipeline_variable:variable of CI pipelines|retry_pipeline:Runs the failed jobs of a CI pipeline again|compare_branches:Shows the differences between two branches
jira|Jira|ticket:ticket of a project|sprint:sprint of a board|transition_ticket:Moves a ticket to another status of its workflow|log_work:Records hours that were worked on a ticket
slack|Slack|channel:channel|reminder:reminder|post_message:Posts a message to a channel or a thread|set_status:Sets the status text and emoji of a user
gmail|Gmail|draft:draft of an email|label:label of emails|send_email:Sends an email with attachments to recipients|search_threads:Searches conversations of a mailbox by sender, subject or date
calendar|Google Calendar|event:event with guests|calendar:calendar|find_free_slot:Finds a time at which all guests are free|respond_invitation:Accepts or declines an invitation
notion|Notion|page:page of a workspace|database_row:row of a database|append_blocks:Adds paragraphs, lists or headings at the end of a page|search_workspace:Searches pages and databases by title
linear|Linear|project:project with milestones|cycle:cycle of a team|assign_owner:Gives an issue to a member of a team|triage_inbox:Lists new requests that are not sorted yet
stripe|Stripe|customer:customer with payment methods|subscription:subscription to a plan|refund_charge:Pays money of a charge back to its customer|get_balance:Returns the available and pending balance of the account
shopify|Shopify|product:product of the shop|discount_code:discount code|fulfil_order:Marks an order as shipped with its tracking number|adjust_inventory:Changes the stock of a product at a location
hubspot|HubSpot|contact:contact of the CRM|deal:deal of a pipeline|enroll_sequence:Puts a contact into a sequence of sales emails|score_lead:Returns how likely a lead is to buy
salesforce|Salesforce|opportunity:opportunity with its amount|account:account of a company|convert_lead:Turns a lead into an account, a contact and an opportunity|run_report:Runs a saved report and returns its rows
zendesk|Zendesk|support_request:request of a customer for support|macro:macro of canned answers|escalate_request:Escalates a support request to the next tier|satisfaction_rating:Returns how satisfied customers were
s3|Amazon S3|bucket:bucket|lifecycle_rule:rule that expires objects|upload_object:Uploads a file to a bucket|presign_url:Makes a link that downloads an object for a limited time
ec2|Amazon EC2|instance:virtual machine|security_group:firewall group|reboot_instance:Reboots a virtual machine|resize_volume:Grows the disk of a virtual machine
kubernetes|Kubernetes|deployment:deployment|config_map:config map|scale_deployment:Sets the number of replicas of a deployment|pod_logs:Returns the last log lines of a pod
docker|Docker|container:container|volume:volume|build_image:Builds an image from a Dockerfile|prune_images:Removes images that no container uses
postgres|PostgreSQL|table:table of a schema|index:index of a table|run_query:Runs a read-only SQL query and returns rows|explain_plan:Explains how the database would execute a SQL statement
redis|Redis|key:key with its value|consumer_group:consumer group of a stream|flush_database:Empties a whole database|memory_stats:Returns how much memory keys take
sentry|Sentry|alert_rule:rule of alerts|release:release of an application|resolve_error:Marks an error as resolved in a release|stack_trace:Returns the stack trace of an error
datadog|Datadog|monitor:monitor of a metric|dashboard:dashboard|query_metric:Returns the values of a metric over time|mute_monitor:Silences a monitor for some hours
pagerduty|PagerDuty|incident:incident|schedule:on-call schedule|acknowledge_incident:Acknowledges an incident, so that no other engineer is paged|who_is_on_call:Returns the engineer who is on call now
figma|Figma|comment:comment on a design|component:component of a library|export_frame:Exports a frame of a design as PNG or SVG|list_styles:Lists colours and text styles of a design
airtable|Airtable|record:record of a base|view:view of a table|attach_file:Attaches a file to a record|sync_base:Synchronises a base with its source
trello|Trello|card:card of a board|checklist:checklist of a card|move_card:Moves a card to another list|archive_board:Archives a board with all its cards
asana|Asana|task:task of a project|portfolio:portfolio of projects|set_dependency:Makes a task wait for another task|status_update:Writes a status update of a project
dropbox|Dropbox|folder:shared folder|file_request:request that others upload files|share_link:Makes a public link to a file|restore_version:Restores an older version of a file
drive|Google Drive|file:file|permission:permission of a file|convert_to_pdf:Converts a document to PDF|transfer_ownership:Makes another user the owner of a file
sheets|Google Sheets|spreadsheet:spreadsheet|named_range:named range of cells|write_cells:Writes values into cells|make_chart:Draws a chart of a range of cells
zoom|Zoom|meeting:video meeting|webinar:webinar with registration|get_recording:Returns the recording of a past video meeting|get_transcript:Returns what was said in a video meeting as text
twilio|Twilio|phone_number:phone number|call_flow:flow of a phone menu|send_sms:Sends a text message to a mobile phone|make_call:Calls a phone number and reads a text aloud
mailchimp|Mailchimp|campaign:newsletter campaign|audience:audience of subscribers|unsubscribe_member:Takes a person off a mailing list|campaign_report:Returns opens and clicks of a newsletter
spotify|Spotify|playlist:playlist|device:playback device|play_song:Plays a song, album or artist|recommend_songs:Recommends music that is like given songs
youtube|YouTube|video:video of a channel|caption_track:caption track|search_videos:Searches videos by words|channel_statistics:Returns subscribers and views of a channel
weather|weather|location:saved location|storm_alert:alert of storms|get_forecast:Returns temperature, rain and wind of the next days for a city|air_quality:Returns pollen and pollution of a place
maps|maps|route:saved route|place_list:list of places|get_directions:Returns the way from one address to another by car, bicycle or foot|geocode_address:Returns latitude and longitude of an address
flights|flights|booking:booking of a flight|price_watch:watch on the price of a route|search_flights:Searches flights between two airports on a date|check_in:Checks a passenger in and returns the boarding pass
hotels|hotels|reservation:reservation of a room|review:review of a stay|search_rooms:Searches free rooms in a town for some nights|late_checkout:Asks for a later departure from a room
restaurants|restaurants|table_booking:booking of a table|favourite:favourite restaurant|search_menus:Searches dishes on menus nearby|dietary_info:Returns allergens of a dish
translate|translation|glossary:glossary of terms|memory:translation memory|translate_text:Translates a text to another language|detect_language:Tells in which language a text is written
currency|currencies|rate_alert:alert on an exchange rate|wallet:wallet of currencies|convert_amount:Converts an amount of money at the current exchange rate|rate_history:Returns past exchange rates
banking|bank|transfer:transfer to another account|standing_order:standing order|list_transactions:Lists what was paid from and to an account|block_card:Blocks a lost or stolen card
crypto|crypto|price_alert:alert on the price of a coin|address_book:address book of wallets|get_price:Returns the price of bitcoin or another coin|gas_fee:Estimates the fee of a transaction on a chain
news|news|topic_feed:feed of a topic|saved_article:saved article|top_headlines:Returns the most important headlines of today|summarize_article:Summarises an article in three sentences
wikipedia|Wikipedia|watchlist_entry:entry of the watchlist|draft_article:draft of an article|get_summary:Returns the first paragraph of an encyclopedia article|random_article:Returns any article
arxiv|arXiv|reading_list:reading list|author_alert:alert on papers of an author|search_papers:Searches scientific papers by words, author or field|download_paper:Downloads the full text of a scientific paper
home|smart home|scene:scene of lights|automation:automation|set_thermostat:Sets the temperature of a room in the house|lock_gate:Locks or unlocks the garden gate
fitness|fitness|workout:workout|goal:goal of steps|log_meal:Records the calories of a meal|sleep_report:Returns how long and how well a person slept
hr|personnel|employee:employee record|job_opening:job opening|request_vacation:Asks for days of vacation|payslip:Returns the payslip of a month
legal|contracts|contract:contract|clause:clause of the library|sign_document:Sends a document for electronic signature|compare_versions:Shows what changed between two versions of a contract
`;

const VERBS = [
  ['create', 'Creates a new'],
  ['list', 'Lists each'],
  ['update', 'Changes fields of a'],
  ['delete', 'Deletes a'],
] as const;

type Properties = Readonly<Record<string, { readonly type: string; readonly description: string }>>;

const toTool = (name: string, description: string, properties: Properties): ToolDescription => ({
  ...{ name, description, idempotent: true, moduleDigest: 'm'.repeat(64), grants: [] },
  inputSchema: {
    type: 'object',
    properties: { ...properties },
    required: Object.keys(properties).slice(0, 1),
  },
});

const TEXT = { type: 'string', description: 'Name or title.' } as const;
const LIMIT = { type: 'integer', description: 'Maximum number of results.' } as const;

const crudTools = (id: string, service: string, kind: string): ToolDescription[] => {
  const [thing = '', text = ''] = kind.split(':');
  return VERBS.map(([verb, sentence]) => {
    const one = { [`${thing}_id`]: { type: 'string', description: `Id of the ${text}.` } };
    const properties: Properties =
      verb === 'create' ? { title: TEXT } : verb === 'list' ? { limit: LIMIT } : one;
    return toTool(`${id}_${verb}_${thing}`, `${sentence} ${text} in ${service}.`, properties);
  });
};

/** 500 tools of 50 services, with names and descriptions as vendors write them. */
export const MANY_TOOLS: readonly ToolDescription[] = SERVICES.trim()
  .split('\n')
  .flatMap((line) => {
    const [id = '', service = '', first = '', second = '', ...others] = line.split('|');
    const further = others.map((other) => {
      const [name = '', description = ''] = other.split(':');
      return toTool(`${id}_${name}`, `${description} (${service}).`, { query: TEXT, limit: LIMIT });
    });
    return [...crudTools(id, service, first), ...crudTools(id, service, second), ...further];
  });

/** 100 asks as a model words them, each with the tool that does it. */
export const TOOL_ASKS: readonly (readonly [ask: string, tool: string])[] = `
open a new issue in a github repository|github_create_issue
merge a pull request on github|github_merge_pull_request
look for a function name in source code|github_search_code
rerun failed CI jobs in gitlab|gitlab_retry_pipeline
diff two branches|gitlab_compare_branches
list open merge requests|gitlab_list_merge_request
move jira ticket to done|jira_transition_ticket
log 3 hours of work on a jira ticket|jira_log_work
file a bug in Jira|jira_create_ticket
write a message in a slack channel|slack_post_message
change my slack status to away|slack_set_status
remind me on Slack tomorrow|slack_create_reminder
send an email to a customer with an attachment|gmail_send_email
find mails from my boss last week|gmail_search_threads
make a draft email|gmail_create_draft
schedule a meeting with guests in google calendar|calendar_create_event
when are all guests free for a meeting|calendar_find_free_slot
decline a meeting invitation|calendar_respond_invitation
cancel an event in the calendar|calendar_delete_event
add a paragraph to a notion page|notion_append_blocks
add a row to a notion database|notion_create_database_row
assign a linear issue to a team member|linear_assign_owner
refund a customer's payment|stripe_refund_charge
how much money is on our stripe account|stripe_get_balance
cancel a stripe subscription|stripe_delete_subscription
mark an order as shipped|shopify_fulfil_order
update stock level of a product|shopify_adjust_inventory
make a discount code for the shop|shopify_create_discount_code
add a contact to the CRM hubspot|hubspot_create_contact
how likely will this lead buy|hubspot_score_lead
run a saved salesforce report|salesforce_run_report
convert a lead in Salesforce|salesforce_convert_lead
escalate a support ticket to tier 2|zendesk_escalate_request
customer satisfaction score of support|zendesk_satisfaction_rating
upload a file to an S3 bucket|s3_upload_object
temporary download link for an s3 object|s3_presign_url
restart an EC2 virtual machine|ec2_reboot_instance
increase disk size of an instance|ec2_resize_volume
launch a new virtual machine on ec2|ec2_create_instance
scale a kubernetes deployment to 5 replicas|kubernetes_scale_deployment
show logs of a pod|kubernetes_pod_logs
build a docker image from a dockerfile|docker_build_image
remove unused docker images|docker_prune_images
run a SQL query on postgres|postgres_run_query
explain the query plan of a SQL statement|postgres_explain_plan
add an index to a postgres table|postgres_create_index
how much memory does redis use|redis_memory_stats
delete a redis key|redis_delete_key
get the stack trace of a sentry error|sentry_stack_trace
mark sentry error as fixed and resolved|sentry_resolve_error
values of a metric in the last hour from datadog|datadog_query_metric
silence a datadog monitor tonight|datadog_mute_monitor
who is on call right now|pagerduty_who_is_on_call
acknowledge the pagerduty incident|pagerduty_acknowledge_incident
export a figma frame as png|figma_export_frame
comment on a figma design|figma_create_comment
create an airtable record|airtable_create_record
move a trello card to another list|trello_move_card
add a checklist to a trello card|trello_create_checklist
make an asana task depend on another task|asana_set_dependency
public link to a dropbox file|dropbox_share_link
restore an old version of a file in Dropbox|dropbox_restore_version
convert a google document to pdf|drive_convert_to_pdf
share a drive file by giving a user permission|drive_create_permission
write values into spreadsheet cells|sheets_write_cells
draw a chart from a range in a spreadsheet|sheets_make_chart
recording of yesterday's zoom meeting|zoom_get_recording
transcript of a video meeting|zoom_get_transcript
send an SMS to a phone|twilio_send_sms
call a phone number|twilio_make_call
open rate of our newsletter campaign|mailchimp_campaign_report
unsubscribe someone from the mailing list|mailchimp_unsubscribe_member
play a song on spotify|spotify_play_song
recommend music similar to this song|spotify_recommend_songs
search youtube videos|youtube_search_videos
subscriber count of a youtube channel|youtube_channel_statistics
weather forecast for Oslo tomorrow|weather_get_forecast
will it rain on Sunday in Berlin|weather_get_forecast
pollen and air quality|weather_air_quality
directions from home to the office by bicycle|maps_get_directions
latitude and longitude of an address|maps_geocode_address
search flights from Paris to Tokyo|flights_search_flights
check in for my flight and get the boarding pass|flights_check_in
find a free hotel room in Rome for two nights|hotels_search_rooms
cancel a hotel reservation|hotels_delete_reservation
book a table at a restaurant|restaurants_create_table_booking
allergens in a dish|restaurants_dietary_info
translate a text to French|translate_translate_text
which language is this text written in|translate_detect_language
convert 100 USD to EUR|currency_convert_amount
historical exchange rates|currency_rate_history
list bank transactions of my account|banking_list_transactions
block my stolen credit card|banking_block_card
price of bitcoin|crypto_get_price
today's headlines|news_top_headlines
first paragraph of a wikipedia article|wikipedia_get_summary
search scientific papers about transformers|arxiv_search_papers
set the thermostat in the living room to 21 degrees|home_set_thermostat
lock the gate of the garden|home_lock_gate
get a document signed electronically|legal_sign_document
`
  .trim()
  .split('\n')
  .map((line) => line.split('|') as [string, string]);
