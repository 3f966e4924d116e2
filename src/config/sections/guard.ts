import { choice, integerSetting, number } from '../kinds/base.ts'

const mode = () => choice(['off', 'warn', 'enforce'], 'warn')
const records = () => integerSetting({ min: 0, max: 10_000_000, example: 20 })
const fraction = () => number({ min: 0, max: 1, example: 0.01 })

/** Settings of the guard against changes of records that should not be believed: what it does, and from how many records on. */
export const GUARD = {
  guard: {
    fixLowered: mode(),
    fixLoweredRecords: records(),
    fixLoweredFraction: fraction(),
    rangesLost: mode(),
    rangesLostRecords: records(),
    rangesLostFraction: fraction(),
    ecosystemChanged: mode(),
    ecosystemChangedRecords: records(),
    ecosystemChangedFraction: fraction(),
    severityChanged: mode(),
    severityChangedRecords: records(),
    severityChangedFraction: fraction(),
    emptied: mode(),
    emptiedRecords: records(),
    emptiedFraction: fraction(),
    withdrawn: mode(),
    withdrawnRecords: records(),
    withdrawnFraction: fraction(),
    futureModified: mode(),
    futureModifiedRecords: records(),
    futureModifiedFraction: fraction(),
    futureDays: number({ min: 0, max: 36_500, example: 2 }),
    notCompared: mode(),
    notComparedRecords: records(),
    notComparedFraction: fraction(),
    incomparable: mode(),
    incomparableRecords: records(),
    incomparableFraction: fraction(),
  },
}
