import { choice, flag, integerSetting, list, nullable, number } from '../kinds/base.ts'
import { keyId, publicKeySetting } from '../kinds/keys.ts'
import { certificateFile, directory, identifier } from '../kinds/names.ts'
import { storeEndpoint, storeUrl } from '../kinds/urls.ts'
import { privateKeyFile } from '../kinds/webhooks.ts'

/** Sections of settings for data that move between mirrors: as bundles, and through the object store of a fleet. */
export const EXCHANGE = {
  bundle: {
    signingKeys: list(privateKeyFile()),
    trustedKeys: list(publicKeySetting()),
    revokedKeys: list(keyId()),
    expireDays: integerSetting({ min: 0, max: 36_500, example: 90 }),
    outbox: nullable(directory()),
    inbox: nullable(directory()),
    keep: integerSetting({ min: 1, max: 10_000, example: 30 }),
    fullDays: number({ min: 0, max: 3650, example: 7 }),
  },
  fleet: {
    url: nullable(storeUrl()),
    endpoint: nullable(storeEndpoint()),
    region: identifier(),
    pathStyle: flag(true),
    caFile: nullable(certificateFile()),
    role: choice(['auto', 'writer', 'reader', 'standby'], 'reader'),
    soleWriter: flag(false),
    name: nullable(identifier()),
    site: nullable(identifier()),
    leaseSeconds: integerSetting({ min: 3, max: 3600, example: 30 }),
    keepDays: number({ min: 1, max: 3650, example: 14 }),
  },
}
