import { choice, integerSetting, number } from '../kinds/base.ts'

/** Settings of the guard against changes that can hide a finding: what it does, and from how many on. */
export const GUARD = {
  guard: {
    mode: choice(['off', 'warn', 'enforce'], 'enforce'),
    limitShare: number({ min: 0, max: 1, example: 0.01 }),
    limitCount: integerSetting({ min: 0, max: 10_000_000, example: 20 }),
    windowDays: number({ min: 0, max: 90, example: 7 }),
  },
}
