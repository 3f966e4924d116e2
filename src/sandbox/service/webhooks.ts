/** A registered endpoint as it is shown; its secret is kept elsewhere (service API, section 2). */
export interface Webhook {
  id: string
  organization_id: string
  url: string
  description: string
  event_types: readonly string[]
  created_at: string
  updated_at: string
}
