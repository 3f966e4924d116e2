import { checkBundles } from './bundle-checks.ts'
import { checkCredentials } from './credentials.ts'
import type { Checked } from './problems.ts'
import { checkRelay } from './relay-checks.ts'
import { SETTINGS } from './settings.ts'
import { checkWebhooks } from './webhook-checks.ts'

/** Problems that show only when settings are seen together. A key already refused is left alone. */
export function checkTogether(checked: Checked, requireUpstream: boolean): string[] {
  return [
    ...checkPresence(checked),
    ...checkOrder(checked, 'upstream.retryMinMs', 'upstream.retryMaxMs'),
    ...checkCredentials(checked),
    ...checkOrder(checked, 'webhooks.debounceMs', 'webhooks.debounceMaxMs'),
    ...checkWebhooks(checked),
    ...checkRelay(checked),
    ...checkBundles(checked),
    ...(requireUpstream ? checkUpstream(checked) : []),
  ]
}

/** Only an edited or cut-off default.yaml can leave a setting without any value. */
function checkPresence({ values, refused }: Checked): string[] {
  return SETTINGS.filter(({ key }) => !values.has(key) && !refused.has(key)).map(
    ({ key }) => `${key}: missing from the shipped defaults; restore config/default.yaml`,
  )
}

function checkOrder({ values, origins, refused }: Checked, low: string, high: string): string[] {
  const [min, max] = [values.get(low), values.get(high)]
  if (refused.has(low) || refused.has(high)) return []
  if (typeof min !== 'number' || typeof max !== 'number' || min <= max) return []
  const place = (key: string): string => `${key} (${origins.get(key) ?? 'not set'})`
  return [`${place(low)}: ${min} is above ${place(high)}, which is ${max}. Allowed: at most that.`]
}

function checkUpstream({ values, refused }: Checked): string[] {
  const key = 'upstream.apiRoot'
  if (refused.has(key) || typeof values.get(key) === 'string') return []
  return [
    `${key}: not set, and there is no default. Give the root URL of the service in the file ` +
      '(upstream: { apiRoot: https://api.example.com }) or as ' +
      'PATCHMIRROR_UPSTREAM_API_ROOT=https://api.example.com. Where no network leads, "patchmirror import FILE" takes ' +
      'bundles instead, and "patchmirror import --again FILE" (a full one) repairs what is damaged.',
  ]
}
