; SPDX-License-Identifier: Apache-2.0
;
; What Numba's code calls in its own runtime library, and an ifunc can have too. The importer drops what is not used.

; Nothing is ever allocated in an ifunc, so nothing is counted.
define void @NRT_incref(ptr %object) {
  ret void
}
define void @NRT_decref(ptr %object) {
  ret void
}

; Gives the strides that an array would have in another shape. 1 when that needs no copy: for arrays that lie in memory
; one element after another, and for one dimension seen as one.
define i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %newnd, ptr %newdims, ptr %newstrides,
                                         i64 %itemsize, i32 %f_order) {
entry:
  %c_order = icmp eq i32 %f_order, 0
  br i1 %c_order, label %kind, label %done

kind:
  %many = icmp ne i64 %nd, 1
  %many_new = icmp ne i64 %newnd, 1
  %general = or i1 %many, %many_new
  br i1 %general, label %check, label %line

line:
  %stride = load i64, ptr %strides, align 8
  br label %write

check:
  %i = phi i64 [ %nd, %kind ], [ %i.next, %agreed ]
  %step = phi i64 [ %itemsize, %kind ], [ %step.next, %agreed ]
  %more = icmp sgt i64 %i, 0
  br i1 %more, label %dimension, label %write

dimension:
  %i.next = sub i64 %i, 1
  %dim.at = getelementptr i64, ptr %dims, i64 %i.next
  %dim = load i64, ptr %dim.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %i.next
  %its = load i64, ptr %stride.at, align 8
  %single = icmp eq i64 %dim, 1
  %same = icmp eq i64 %its, %step
  %fits = or i1 %single, %same
  br i1 %fits, label %agreed, label %done

agreed:
  %step.next = mul i64 %step, %dim
  br label %check

write:
  %first = phi i64 [ %stride, %line ], [ %itemsize, %check ]
  br label %next

next:
  %k = phi i64 [ %newnd, %write ], [ %k.next, %body ]
  %s = phi i64 [ %first, %write ], [ %s.next, %body ]
  %left = icmp sgt i64 %k, 0
  br i1 %left, label %body, label %done

body:
  %k.next = sub i64 %k, 1
  %new.at = getelementptr i64, ptr %newstrides, i64 %k.next
  store i64 %s, ptr %new.at, align 8
  %newdim.at = getelementptr i64, ptr %newdims, i64 %k.next
  %newdim = load i64, ptr %newdim.at, align 8
  %s.next = mul i64 %s, %newdim
  br label %next

done:
  %result = phi i32 [ 0, %entry ], [ 0, %dimension ], [ 1, %next ]
  ret i32 %result
}

; Mathematics that is one instruction on every architecture: no library is asked for.
define double @sqrt(double %x) {
  %y = call double @llvm.sqrt.f64(double %x)
  ret double %y
}
declare double @llvm.sqrt.f64(double)
define float @sqrtf(float %x) {
  %y = call float @llvm.sqrt.f32(float %x)
  ret float %y
}
declare float @llvm.sqrt.f32(float)
define double @fabs(double %x) {
  %y = call double @llvm.fabs.f64(double %x)
  ret double %y
}
declare double @llvm.fabs.f64(double)
define float @fabsf(float %x) {
  %y = call float @llvm.fabs.f32(float %x)
  ret float %y
}
declare float @llvm.fabs.f32(float)
define double @floor(double %x) {
  %y = call double @llvm.floor.f64(double %x)
  ret double %y
}
declare double @llvm.floor.f64(double)
define float @floorf(float %x) {
  %y = call float @llvm.floor.f32(float %x)
  ret float %y
}
declare float @llvm.floor.f32(float)
define double @ceil(double %x) {
  %y = call double @llvm.ceil.f64(double %x)
  ret double %y
}
declare double @llvm.ceil.f64(double)
define float @ceilf(float %x) {
  %y = call float @llvm.ceil.f32(float %x)
  ret float %y
}
declare float @llvm.ceil.f32(float)
define double @trunc(double %x) {
  %y = call double @llvm.trunc.f64(double %x)
  ret double %y
}
declare double @llvm.trunc.f64(double)
define float @truncf(float %x) {
  %y = call float @llvm.trunc.f32(float %x)
  ret float %y
}
declare float @llvm.trunc.f32(float)
define double @rint(double %x) {
  %y = call double @llvm.rint.f64(double %x)
  ret double %y
}
declare double @llvm.rint.f64(double)
define float @rintf(float %x) {
  %y = call float @llvm.rint.f32(float %x)
  ret float %y
}
declare float @llvm.rint.f32(float)
