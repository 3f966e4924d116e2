import type { Feature } from '../../daemon/feature.ts'
import { ACCOUNT_VERBS } from './verbs.ts'

/** Manages the account at the service: users, API keys, subscriptions, and where it sends events. */
export const account: Feature = {
  name: 'account',
  verbs: { service: ACCOUNT_VERBS },
}
