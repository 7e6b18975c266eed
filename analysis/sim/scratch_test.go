package sim
import ("testing";"time";"fmt")
func TestScratch(t *testing.T){
 e:=Published(); e.Runs,e.BadRuns,e.RivalRuns=20,20,20
 start:=time.Now()
 for _,l:=range e.Run(){
  if l.Cell.Family.Name=="independent" || l.Cell.Rate==1000 {
  fmt.Printf("%-55s %-16s false %3d found %3d/%d rb %v prom %d/%v early %d failed %.0f\n", l.Cell,l.Contestant,l.False,l.Found,l.Runs,l.RollbackTime,l.Promoted,l.PromotionTime,l.Early,l.Failed)}
 }
 fmt.Println(time.Since(start))
}
